// Package view shows what the containers of Pods on fake nodes see of their devices, through
// kwok's kubelet API: kubectl logs prints the environment, kubectl exec runs env, cat and
// nvidia-smi. The files are in a directory that kwok shares. For each Pod it writes a Logs
// and an Exec object of kwok's, once.
package view
