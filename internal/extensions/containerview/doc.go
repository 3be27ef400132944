// Package containerview works out what the containers of a Pod would see of the
// devices in its claims: what a kubelet asks a container runtime to inject, and what
// that makes of it. Everything in it is pure.
package containerview
