// Package bench puts load on servers that speak Kafka's protocol, as a client does,
// and measures them: rates, latencies, and the CPU and the memory of a server whose
// process it can see.
//
// Servers take turns within a run, round by round, so that what else the machine
// does meets all of them; results are medians over the rounds. Versions are agreed on
// by ApiVersions, and every group is served by the coordinator that FindCoordinator
// names. A request of a closed loop is encoded once, and an answer is decoded only if
// it differs from the one that was seen to be right, so that the client costs as
// little as it can: it shares the machine with the servers.
//
// What a run makes (a topic, groups) has names of its own and is deleted at the end.
package bench
