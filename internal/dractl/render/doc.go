// Package render is the command kwok-dractl render.
package render
