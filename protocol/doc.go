// Package protocol turns the bytes of a connection into Kafka requests and
// responses into bytes: frames ([FrameBuffer]), headers, and a [Table] of the APIs
// and versions that are served, which checks and decodes bodies. It opens no
// sockets, starts no goroutines and knows no clock.
//
// A request is checked against Kafka's own layout (requests.txt) before kmsg
// decodes it. kmsg is made for clients and forgiving: it takes a null for an empty
// array or bytes where Kafka closes the connection, and it makes structs from as
// little as two bytes each, so that a frame could become many times its size in
// memory. The check says no where Kafka does, and what decoding will cost.
package protocol
