// Package access serves over TLS, and only to users that the API server
// authorizes. As other components of Kubernetes do, it asks to whom a bearer token
// belongs (TokenReview), and whether that user may get the path
// (SubjectAccessReview).
package access
