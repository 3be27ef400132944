// Package why says why Pods with devices do not run yet: what keeps them from being
// scheduled, bound, prepared or started.
package why
