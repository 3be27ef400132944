// Package story makes up what happens to a cluster whose scheduler is on trial: nodes, devices, claims and
// Pods that come, change and go, all drawn from a seed. A story is plain API objects and steps. It needs neither kwok
// nor kwok-dra in the cluster: a Player applies the steps, and does the kubelet's and the drivers' part of them.
//
// All objects have the label Label, and either live in a namespace of their own or have the story's ID in their
// names, so that stories can follow each other on one cluster.
package story
