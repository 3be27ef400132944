// Package page serves a page that shows what has become of each device, and the
// JSON that it is made of. As long as nobody looks it does nothing.
package page
