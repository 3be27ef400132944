// Package atomicfile writes files at once.
package atomicfile
