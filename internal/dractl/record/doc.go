// Package record is the command kwok-dractl record.
package record
