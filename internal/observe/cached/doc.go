// Package cached has what all caches of API objects share.
package cached
