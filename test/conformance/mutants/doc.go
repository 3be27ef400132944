// Command mutants proves that kwok-dractl check-scheduler and check-autoscaler find what they are for. It builds kube-scheduler
// and Karpenter with one fault at a time, each a patch below this folder, and has stories played until one violates a statement
// that the fault breaks. The story must keep that statement with the program as it was released.
package main
