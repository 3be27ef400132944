// Package docs proves that the documentation holds together: links resolve, each
// page can be reached, README.md is short, and the English is plain. It also proves
// that GitHub can read the issue forms, and that CI runs what it should.
package docs
