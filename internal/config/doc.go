// Package config decides which configuration is in force. In come the texts of files, ConfigMaps,
// and custom resources; out comes one validated Set, which never changes.
//
// The way of a ConfigMap: Run (configmap.go) watches it. syncCarrier (store.go) has
// observeSources (carrier.go) compare versions and decode new ones (decode.go), decideVersions
// choose the version of each source, NewSet (set.go) put their documents together, and
// recordDecision report what came of it.
//
// Decoding is strict. A source is in force as a whole or not at all: if one of its documents is
// invalid, its last good version stays in force. Nothing here writes to the API server, except
// events.
package config
