// Package check is the command that looks for what is wrong with the devices of a cluster, and says how to mend it.
package check
