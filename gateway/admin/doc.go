// Package admin serves health and metrics over HTTP, and turns what the gateway
// and the coordinator report into log lines and metrics.
package admin
