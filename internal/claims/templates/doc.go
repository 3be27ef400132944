// Package templates answers for the DRA drivers that have templates: a claim shows what the
// templates of its devices say, and a plugin is up, silent or gone as the condition of the node
// says.
//
// In: a node, a claim and the set in force. Out: what the driver answers. It never calls the API
// server.
package templates
