// Package parameters checks opaque parameters as a driver does when it decodes and validates them.
// In come the kinds and schemas of a template, and parameters; out comes the driver's error.
package parameters
