// Package checkdriver is the command kwok-dractl check-driver, a contract test of DRA drivers. It
// stands in for the kubelet and the scheduler of one fake node.
package checkdriver
