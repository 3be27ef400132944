// Package history says what has happened to a claim since its creation, and when, by what the API keeps. It is pure.
package history
