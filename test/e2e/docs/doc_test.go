// Package docs runs the documentation: the commands and documents of README.md,
// of docs, and of every other page that names a cluster, in order, as a reader
// would. See package page for how a page says what is run, and CONTRIBUTING.md.
// Pages share clusters: each must leave the one that it was given as it was.
package docs
