// Package classes keeps the DeviceClasses that adapted configuration needs. In come DeviceClasses
// and the configuration in force; out comes one API call at a time. It never touches a DeviceClass
// that this installation of kwok-dra has not created.
package classes
