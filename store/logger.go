package store

import (
	"fmt"
	"runtime"
)

// Logger takes what the store and its Pebbles have to say; nil functions discard.
// Nothing else of the store logs.
type Logger struct {
	Infof  func(format string, args ...any)
	Errorf func(format string, args ...any)
}

// fatalLogger is the logger of a Pebble. Pebble calls Fatalf where it cannot go on
// and relies on it not to return.
type fatalLogger struct {
	Logger
	name    string
	failure *Failure
}

// Infof implements [pebble.Logger].
func (l fatalLogger) Infof(format string, args ...any) {
	if l.Logger.Infof != nil {
		l.Logger.Infof(l.name+": "+format, args...)
	}
}

// Errorf implements [pebble.Logger].
func (l fatalLogger) Errorf(format string, args ...any) {
	if l.Logger.Errorf != nil {
		l.Logger.Errorf(l.name+": "+format, args...)
	}
}

// Fatalf makes the error the end of the store and ends the goroutine. A panic
// would end the process with a stack trace instead of one clear line, and only on
// the committer's goroutine could somebody catch it: flushes and compactions have
// goroutines of their own.
func (l fatalLogger) Fatalf(format string, args ...any) {
	l.failure.fail(fmt.Errorf("%s: "+format, append([]any{l.name}, args...)...))
	runtime.Goexit()
}
