// Package untrusted reads files and folders that programs of others write: drivers, or whoever may
// write to a shared volume. A read never waits for another program, and what it returns is bounded:
// a FIFO, a link to a device or a file without end is an error of the one who put it there.
//
// The linter keeps the rest of the product from os.ReadFile, os.ReadDir and the like.
package untrusted
