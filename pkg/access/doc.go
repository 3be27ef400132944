// Package access serves over TLS, and only to those whom the API server lets
// read: as other components of Kubernetes do, it asks who a bearer token is
// (TokenReview), and whether that user may get the path (SubjectAccessReview).
package access
