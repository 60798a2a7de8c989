package stray

// TODO: without a number; TODO(#1) has one.

const where = "/work/main"
