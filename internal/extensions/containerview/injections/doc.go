// Package injections works out what drivers with templates have a container runtime inject.
package injections
