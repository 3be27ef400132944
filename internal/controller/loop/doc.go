// Package loop has the worker loop that all of kwok-dra's controllers run: a queue of keys, a function that brings the
// object of a key to the state it should be in, and retries with a backoff per key.
package loop
