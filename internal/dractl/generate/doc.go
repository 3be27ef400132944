// Package generate is the command kwok-dractl generate.
package generate
