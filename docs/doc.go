// Package docs proves that the documentation holds together: links resolve, each
// page can be reached, README.md is one page long, Go code compiles, and quoted
// messages exist. It also proves that GitHub can read the issue forms, and that CI
// runs what it should.
package docs
