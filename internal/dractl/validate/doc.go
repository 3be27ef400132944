// Package validate is the command kwok-dractl validate.
package validate
