// Package target has what kwok-dractl scale and generate make nodes of: profiles,
// templates in files and templates in the cluster, and the plan that leads there.
package target
