// Package status writes the status of custom resources: whether they are in force, and where
// their devices are published. In come the acceptance of objects and the outcomes of publishing;
// out come patches of statuses. It knows ResourcePoolTemplates; other kinds are registered.
package status
