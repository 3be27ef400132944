// Package objectstest makes objects of a cluster with devices, for tests.
package objectstest
