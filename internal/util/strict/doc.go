// Package strict decodes YAML and JSON documents into Go types: Split a text, Parse each document,
// Decode it into a type. It decodes whatever fits, and names everything that does not: the path of
// each field, its value, what would be valid, and what was probably meant.
package strict
