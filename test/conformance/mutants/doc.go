// Command mutants proves that kwok-dractl check-scheduler finds what it is for. It builds kube-scheduler with one fault at a
// time, each a patch beside this file, and has check-scheduler play stories until one violates a statement that the fault
// breaks. The story must keep that statement with the scheduler as it was released.
package main
