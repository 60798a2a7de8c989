package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/cmd/rollcall/node"
)

// stopTimeout bounds the time from the signal to the exit, with some of the 5 s
// that are promised left for the last sync.
const stopTimeout = 4 * time.Second

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway until SIGTERM or SIGINT",
		Args:  noArgs,
	}
	load := withConfig(cmd)
	profile := cmd.Flags().String("cpu-profile", "", "write a CPU profile to `FILE` until it stops")
	cmd.RunE = func(_ *cobra.Command, _ []string) error {
		c, warnings, err := load()
		if err != nil {
			return err
		}
		stop, err := startProfile(*profile)
		if err != nil {
			return err
		}
		defer stop()
		log := newLogger(c)
		defer func() { _ = log.Sync() }() // standard error may not support it
		ctx, forget := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer forget()
		return serve(ctx, c, warnings, log, forget)
	}
	return cmd
}

// logConfiguration logs every value and where it came from: those that somebody set
// in a line each, below one with the defaults.
func logConfiguration(c *config.Config, log *zap.Logger) {
	var defaults []string
	var set []config.Value
	for _, v := range c.Effective() {
		if v.IsDefault() {
			defaults = append(defaults, v.Key.Name+"="+v.Shown())
		} else {
			set = append(set, v)
		}
	}
	log.Info("configuration", zap.String("source", "default"), zap.Strings("values", defaults))
	for _, v := range set {
		log.Info("configuration", zap.String("key", v.Key.Name), zap.String("value", v.Shown()), zap.String("source", v.Source))
	}
}

// serve starts the gateway, runs it until ctx ends or a part of it fails, and
// stops it. stopping is called when the stop begins: from then on a second signal
// ends the process at once.
func serve(ctx context.Context, c *config.Config, warnings []string, log *zap.Logger, stopping func()) error {
	n, err := node.Start(ctx, node.Options{Config: c, Version: versionName(), Log: log})
	if errors.Is(err, node.ErrInterrupted) {
		log.Info("stopped", zap.String("reason", err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn("configuration", zap.String("warning", w))
	}
	logConfiguration(c, log)
	failed := n.Run()
	select {
	case <-ctx.Done():
		log.Info("stopping", zap.String("reason", "signal"))
	case err = <-failed:
		log.Error("stopping", zap.String("reason", "a part failed"), zap.Error(err))
	}
	stopping()
	deadline, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if stopErr := n.Stop(deadline); err == nil {
		err = stopErr
	}
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// newLogger returns the process's logger, on standard error.
func newLogger(c *config.Config) *zap.Logger {
	level, err := zapcore.ParseLevel(c.LogLevel)
	if err != nil {
		panic(fmt.Sprintf("log.level %q passed the check of the configuration", c.LogLevel))
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if c.LogFormat == "console" {
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level))
}

// startProfile begins to write a CPU profile, if there is a file for it, and returns
// what ends it.
func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("--cpu-profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("--cpu-profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a profile is worth no exit code
	}, nil
}
