// Package docs proves that the documentation holds together: links resolve, each
// page can be reached, README.md is short, and the English is plain.
package docs
