package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/assignor"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/admin"
	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/groups"
	"github.com/rollcall-mq/rollcall/store/named"
	"github.com/rollcall-mq/rollcall/store/topics"
)

// open opens the data directory, makes the coordinator over it and reads the topics.
func (n *Node) open(c *config.Config) (err error) {
	commits := n.metrics.Store()
	if n.store, err = store.Open(store.Options{
		Dir:          c.DataDir,
		FS:           n.opts.FS,
		Shards:       c.OffsetsShards,
		NoSync:       !c.StoreSync,
		MinFreeBytes: c.StoreMinFreeBytes,
		Version:      n.opts.Version,
		Logger:       storeLogger(n.log),
		Observe:      func(name string, k store.Commit) { commits.OnCommit(name, k.Ops, k.Bytes, k.Took) },
	}); err != nil {
		return err
	}
	commits.Free(n.store.FreeBytes)
	changes, err := groups.Open(n.store.Groups(), n.store.Info().Shards)
	if err != nil {
		return fmt.Errorf("reading the groups in %s: %w", c.DataDir, err)
	}
	if n.topics, err = topics.Open(topics.Options{
		DB:                 n.store.Topics().Pebble,
		Committer:          n.store.Topics().Committer,
		Broker:             c.Set(),
		ProducerExpiration: c.ProducerExpiration,
		RetentionInterval:  c.RetentionCheck,
		OnCleanError: func(topic string, partition int32, err error) {
			n.log.Error("records not cleaned", zap.String("topic", topic), zap.Int32("partition", partition), zap.Error(err))
		},
		OnDelete: func(name string, id topics.ID) { topicDeleted(n.router, name, group.TopicID(id)) },
	}); err != nil {
		return fmt.Errorf("reading the topics in %s: %w", c.DataDir, err)
	}
	n.router = coordinator.NewRouter(n.shardConfig(c), n.store.Info().Shards, changes)
	if n.txns, err = txn.New(txn.Config{
		TimeoutMaxMs:   int32(c.TransactionTimeoutMax.Milliseconds()),
		IDExpiration:   c.TransactionalIDExpiration,
		AbortInterval:  c.TransactionAbortInterval,
		ExpireInterval: c.TransactionExpireInterval,
	}, n.topics, n.router, nil); err != nil {
		return fmt.Errorf("reading the transactions in %s: %w", c.DataDir, err)
	}
	history := coordinator.History{Retention: c.OffsetsHistoryRetention, Bytes: c.OffsetsHistoryBytes}
	n.chores = append(n.chores, n.txns.Run, func(ctx context.Context) {
		n.router.TrimHistory(ctx, history, func(shard uint32, err error) {
			n.log.Error("history not trimmed", zap.Uint32("shard", shard), zap.Error(err))
		})
	})
	return n.openNamed(c)
}

// openNamed reads what is kept by name.
func (n *Node) openNamed(c *config.Config) (err error) {
	if n.producers, err = named.Open(n.store.Groups(), named.ProducerOffsets); err == nil {
		n.snapshots, err = named.Open(n.store.Groups(), named.OffsetSnapshots)
	}
	if err != nil {
		return fmt.Errorf("reading the snapshots in %s: %w", c.DataDir, err)
	}
	n.chores = append(n.chores, func(ctx context.Context) {
		sweep(ctx, c.ProducerSnapshotsCheck, n.producers.Sweep, func(removed int, err error) {
			if err != nil {
				n.log.Error("producer snapshots not removed", zap.Error(err))
			}
			if removed > 0 {
				n.log.Info("producer snapshots removed", zap.Int("expired", removed))
			}
		})
	})
	return nil
}

// sweep calls f at each interval, and done with its result, until ctx ends.
func sweep(ctx context.Context, interval time.Duration, f func() (int, error), done func(int, error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			done(f())
		case <-ctx.Done():
			return
		}
	}
}

// topicDeleted makes every group forget its offsets of a topic.
func topicDeleted(groups coordinator.Groups, name string, id group.TopicID) {
	groups.Each(context.Background(),
		func() group.Event { return &group.TopicDeleted{Name: name, ID: id} },
		func(uint32, group.Code, []group.Reply) {})
}

// shardConfig is the coordinator's part of the configuration.
func (n *Node) shardConfig(c *config.Config) shard.Config {
	var listener shard.Listener = admin.NewGroups(n.metrics, n.log, n.store.Info().Shards)
	if n.opts.Listener != nil {
		listener = n.opts.Listener(listener)
	}
	return shard.Config{
		Group: group.Config{
			InitialRebalanceDelay: group.Time(c.InitialRebalanceDelay.Milliseconds()),
			MaxSize:               c.GroupMaxSize,
			MaxMetadata:           c.OffsetMetadataMax,
			OffsetsRetention:      group.Time(c.OffsetsRetention.Milliseconds()),
			PendingMax:            c.GroupPendingMax,
			Assignors:             map[string]group.Assignor{"sr": schemaRegistry{}},
		},
		DiskLow:        n.store.DiskLow,
		Topics:         n.topicID,
		Transactions:   func(id string, t group.Transaction) group.Outcome { return n.txns.Outcome(id, t) },
		Listener:       listener,
		CommitTimeout:  group.Time(c.OffsetsCommitTimeout.Milliseconds()),
		ExpireInterval: group.Time(c.OffsetsRetentionCheck.Milliseconds()),
	}
}

func (n *Node) topicID(name string) (group.TopicID, bool) {
	id, _, ok := n.topics.Lookup(name)
	return id, ok
}

// wire makes the servers.
func (n *Node) wire(c *config.Config) (err error) {
	cluster := n.cluster(c)
	auth := api.AllowAll{}
	handlers := &api.Handlers{
		Config: api.Config{
			SessionTimeoutMin: int32(c.MinSessionTimeout.Milliseconds()),
			SessionTimeoutMax: int32(c.MaxSessionTimeout.Milliseconds()),
		},
		Groups: n.router, Topics: n.topics, Auth: auth, Cluster: cluster,
	}
	topicHandlers := &api.TopicHandlers{
		Config: api.TopicConfig{
			AutoCreate:       c.AutoCreateTopics,
			NumPartitions:    int32(c.DefaultPartitions),
			FetchMaxBytes:    int32(c.FetchMax),
			FetchSessionsMax: c.FetchSessionsMax,
			Effective:        c.Set(),
		},
		Log: n.topics, Txns: n.txns, Auth: auth, Cluster: cluster, DiskLow: n.store.DiskLow,
	}
	txnHandlers := &api.TxnHandlers{Handlers: handlers, Txns: n.txns, Log: n.topics, DiskLow: n.store.DiskLow}
	names := make([]string, len(n.listeners))
	for i, l := range n.listeners {
		names[i] = l.name
	}
	connections := n.metrics.Connections(names...)
	table := api.NewTable(cluster, slices.Concat(handlers.Entries(), topicHandlers.Entries(), txnHandlers.Entries())...)
	n.admin.HandleREST(rest.New(rest.Config{
		Version: n.opts.Version, Groups: n.router, Kafka: table, History: n.router, Settings: settings(c),
		Producers: n.producers, Snapshots: n.snapshots, ProducerRetention: c.ProducerSnapshotsRetention,
	}))
	if n.kafka, err = gateway.New(gateway.Config{
		Entries:        table.Entries(),
		Observer:       connections,
		Release:        n.releaseHeld,
		FrameBytesMax:  c.RequestMax,
		QueuedBytesMax: c.QueuedRequestsMax,
		ConnectionsMax: c.ConnectionsMax,
		IdleMax:        c.ConnectionIdle,
	}, n.log); err != nil {
		return err
	}
	connections.Open(n.kafka.Connections, n.kafka.QueuedBytes)
	return nil
}

// settings is the effective configuration as it may be shown.
func settings(c *config.Config) []rest.Setting {
	all := make([]rest.Setting, 0, len(config.Keys))
	for _, v := range c.Effective() {
		all = append(all, rest.Setting{Key: v.Key.Name, Value: v.Shown(), Source: v.Source})
	}
	return all
}

// releaseHeld makes the coordinator and the topics answer all that they hold.
func (n *Node) releaseHeld(ctx context.Context) {
	n.topics.Release()
	if err := n.router.Stop(ctx); err != nil {
		n.log.Error("coordinator not stopped cleanly", zap.Error(err))
	}
}

// cluster is what clients are told of the nodes: this one.
func (n *Node) cluster(c *config.Config) *api.ClusterView {
	self := api.Node{ID: c.NodeID}
	for _, l := range n.listeners {
		self.Endpoints = append(self.Endpoints, api.Endpoint{Listener: l.name, Host: l.advertised.Host, Port: int32(l.advertised.Port)})
	}
	return api.NewClusterView(&api.Cluster{
		ID: n.store.Info().ClusterID, NodeID: c.NodeID, ControllerID: c.NodeID, Nodes: []api.Node{self},
	})
}

// schemaRegistry assigns for the protocol type of schema registries.
type schemaRegistry struct{}

// Assign implements [group.Assignor].
func (schemaRegistry) Assign(members []group.JoinMember) [][]byte {
	all := make([]assignor.Member, len(members))
	for i := range members {
		all[i] = assignor.Member{ID: members[i].MemberID, Metadata: members[i].Metadata}
	}
	return assignor.SchemaRegistry(all)
}

// storeLogger gives what the store has to say to the process's log.
func storeLogger(log *zap.Logger) store.Logger {
	return store.Logger{
		Infof: func(format string, args ...any) {
			log.Info("store", zap.String("detail", fmt.Sprintf(format, args...)))
		},
		Errorf: func(format string, args ...any) {
			log.Error("store", zap.String("detail", fmt.Sprintf(format, args...)))
		},
	}
}
