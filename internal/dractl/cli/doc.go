// Package cli has what the sub-commands of kwok-dractl share towards the shell:
// streams, exit codes, arguments and the name of the command.
package cli
