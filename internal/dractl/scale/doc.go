// Package scale has the commands kwok-dractl scale and delete.
package scale
