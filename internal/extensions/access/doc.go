// Package access serves over TLS, and only to users that the API server authorizes. Like other components of Kubernetes, it
// asks to whom a bearer token belongs (TokenReview), and whether that user may read the path (SubjectAccessReview).
package access
