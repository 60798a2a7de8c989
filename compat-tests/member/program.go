package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// program is a command that says what it does in lines of its own.
type program struct {
	*exec.Cmd
	// stdout and stderr get each line; nil leaves them as they are.
	stdout, stderr func(line string)
}

// run starts the program, asks it to end when the context ends, and hands out its lines.
func (p program) run(ctx context.Context) error {
	p.Stderr = os.Stderr
	var readers sync.WaitGroup
	for _, stream := range []struct {
		pipe func() (io.ReadCloser, error)
		line func(string)
	}{{p.StdoutPipe, p.stdout}, {p.StderrPipe, p.stderr}} {
		if stream.line == nil {
			continue
		}
		if p.stderr != nil {
			p.Stderr = nil // StderrPipe wants it unset
		}
		r, err := stream.pipe()
		if err != nil {
			return err
		}
		readers.Go(func() {
			for lines := bufio.NewScanner(r); lines.Scan(); {
				stream.line(lines.Text())
			}
		})
	}
	if err := p.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Process.Signal(syscall.SIGTERM) })
	defer stop()
	readers.Wait()
	err := p.Wait()
	if ctx.Err() != nil { // it was asked to end
		return nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(p.Args, " "), err)
	}
	return err
}
