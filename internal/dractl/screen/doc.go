// Package screen shows text on a terminal, in place of what it showed before.
package screen
