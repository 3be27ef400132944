// Package autoscaled starts clusters on which kwok-dractl check-autoscaler tests an autoscaler.
package autoscaled
