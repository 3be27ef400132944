// Package natural orders names as people count: gpu-2 comes before gpu-10.
package natural
