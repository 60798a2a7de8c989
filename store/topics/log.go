package topics

import (
	"cmp"
	"crypto/rand"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// Limits of a store.
const (
	// PartitionsMax bounds the partitions of all topics together; each costs memory.
	PartitionsMax = 200_000
	// producerIDBlock is how many producer ids are reserved at a time; a restart
	// skips what is left of one.
	producerIDBlock = 1000
	// producersMax bounds the idempotent producers that one partition remembers.
	// When there are more, the ones that were quiet for the longest are forgotten.
	producersMax = 100_000
	// configuredGroupsMax bounds the groups that set configurations.
	configuredGroupsMax = 100_000
)

// Options configures a [Log].
type Options struct {
	// DB is the Pebble of the topics, and Committer its only writer.
	DB        *pebble.DB
	Committer *store.Committer
	// Broker has the gateway's own settings under Kafka's names for them, such as
	// "message.max.bytes": those that were set, not defaults. Topics that do not set
	// the configuration themselves follow it.
	Broker map[string]string
	// ProducerExpiration is after how long an idempotent producer that sends nothing
	// is forgotten (producer.id.expiration.ms). Zero: one day.
	ProducerExpiration time.Duration
	// RetentionInterval is how often records to delete are looked for
	// (log.retention.check.interval.ms). Zero: five minutes.
	RetentionInterval time.Duration
	// OnCleanError, if set, is told what kept retention from its work in a partition;
	// it is tried again at the next look.
	OnCleanError func(topic string, partition int32, err error)
	// OnDelete, if set, is called when the deletion of a topic is durable, before it
	// is answered, on a goroutine of its own.
	OnDelete func(name string, id ID)
	// Now and NewID are the clock and the source of topic ids; nil for real ones.
	Now   func() time.Time
	NewID func() ID
}

// Log holds all topics of a store.
type Log struct {
	db        *pebble.DB
	committer *store.Committer
	broker    map[string]string
	expireMs  int64
	// producersMax is the constant but in tests.
	producersMax int
	// compactKeysMax is the constant but in tests.
	compactKeysMax int
	onDelete       func(name string, id ID)
	onCleanError   func(topic string, partition int32, err error)
	now            func() time.Time
	newID          func() ID
	unpack         decompressors

	// byName and byID have the topics that are durable and not deleted: name to
	// *Topic and ID to *Topic. Written by the committer's goroutine, read by all.
	byName, byID sync.Map
	// groupConfigs has what groups set themselves, once it is durable: group id to
	// []Config. Written by the committer's goroutine, read by all.
	groupConfigs sync.Map

	// mu puts all writes in order: what is checked under it and submitted under it
	// reaches the committer in the same order. Submit may block until the committer
	// goes on, so nothing that runs on the committer's goroutine may take it.
	mu    sync.Mutex
	names names
	// groupNewest is groupConfigs with what is not durable yet.
	groupNewest map[string][]Config
	// The producer ids from idNext to idEnd are reserved but not handed out.
	idNext, idEnd int64

	// idDurable is the end of the ids whose reservation is durable.
	idDurable atomic.Int64
	// cleanerWake wakes cleanLoop.
	cleanerWake chan struct{}
	// running are expireLoop, cleanLoop and the goroutines that call onDelete.
	running sync.WaitGroup
	closed  chan struct{}
	// releasing: nobody is to wait for records any more.
	releasing atomic.Bool
}

// Open reads the topics of a store. What was submitted to the committer must be
// done before l is closed.
func Open(o Options) (*Log, error) {
	l := &Log{
		db:           o.DB,
		committer:    o.Committer,
		broker:       o.Broker,
		expireMs:     o.ProducerExpiration.Milliseconds(),
		onDelete:     o.OnDelete,
		cleanerWake:  make(chan struct{}, 1),
		onCleanError: o.OnCleanError,
		now:          o.Now,
		newID:        o.NewID,
		unpack:       newDecompressors(runtime.GOMAXPROCS(0)),
		names:        names{byKey: map[string]*Topic{}},
		groupNewest:  map[string][]Config{},
		closed:       make(chan struct{}),

		producersMax:   producersMax,
		compactKeysMax: compactKeysMax,
	}
	if l.expireMs == 0 {
		l.expireMs = 24 * time.Hour.Milliseconds()
	}
	if l.onCleanError == nil {
		l.onCleanError = func(string, int32, error) {}
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.newID == nil {
		l.newID = randomID
	}
	if err := l.load(); err != nil {
		return nil, err
	}
	l.running.Go(l.expireLoop)
	interval := cmp.Or(o.RetentionInterval, retentionInterval)
	l.running.Go(func() { l.cleanLoop(interval) })
	return l, nil
}

// Close stops what runs in the background and waits for the calls of OnDelete.
func (l *Log) Close() {
	close(l.closed)
	l.running.Wait()
}

// Release wakes everybody who waits for records, now and from now on: the gateway
// is being shut down.
func (l *Log) Release() {
	l.releasing.Store(true)
	l.byName.Range(func(_, t any) bool {
		for _, p := range t.(*Topic).Partitions() {
			p.wakeAll()
		}
		return true
	})
}

// randomID returns a random UUID, version 4. Like Kafka's it does not begin with a
// dash in base64, which command lines would take for a flag.
func randomID() ID {
	for {
		var id ID
		_, _ = rand.Read(id[:]) // never fails
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if id[0]>>2 != 62 {
			return id
		}
	}
}

// NewID returns an id that no topic has.
func (l *Log) NewID() ID {
	for {
		if id := l.newID(); id != (ID{}) && l.TopicByID(id) == nil {
			return id
		}
	}
}

func (l *Log) nowMs() int64 { return l.now().UnixMilli() }

// Topic returns the topic of this name, nil if there is none.
func (l *Log) Topic(name string) *Topic {
	if t, ok := l.byName.Load(name); ok {
		return t.(*Topic)
	}
	return nil
}

// TopicByID returns the topic of this id, nil if there is none.
func (l *Log) TopicByID(id ID) *Topic {
	if t, ok := l.byID.Load(id); ok {
		return t.(*Topic)
	}
	return nil
}

// Lookup returns the id and the number of partitions of a topic.
func (l *Log) Lookup(name string) (id [16]byte, partitions int32, ok bool) {
	if t := l.Topic(name); t != nil {
		return t.ID, int32(len(t.Partitions())), true
	}
	return id, 0, false
}

// ByID returns the name of a topic.
func (l *Log) ByID(id [16]byte) (name string, ok bool) {
	if t := l.TopicByID(id); t != nil {
		return t.Name, true
	}
	return "", false
}

// All returns all topics in order of their names.
func (l *Log) All() []*Topic {
	all := map[string]*Topic{}
	l.byName.Range(func(name, t any) bool {
		all[name.(string)] = t.(*Topic)
		return true
	})
	return slices.SortedFunc(maps.Values(all), func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) })
}

// barrier calls done when everything that was submitted before is durable. Guarded
// by mu, like every submission.
func (l *Log) barrier(done func(error)) {
	l.committer.Submit(store.Op{Sync: true, Done: done})
}

// NewProducerID hands out a producer id that nobody has had before, and calls done
// when that is durable, maybe at once.
func (l *Log) NewProducerID(done func(id int64, err error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.takeProducerID()
	if id < l.idDurable.Load() {
		done(id, nil)
		return
	}
	l.barrier(func(err error) { done(id, err) })
}

// TakeProducerID hands out a producer id that nobody has had before. It is durably
// taken when anything is that was submitted after it.
func (l *Log) TakeProducerID() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeProducerID()
}

// takeProducerID reserves further ids if none is left. Guarded by mu.
func (l *Log) takeProducerID() int64 {
	id := l.idNext
	l.idNext++
	if id < l.idEnd {
		return id
	}
	end := id + producerIDBlock
	l.idEnd = end
	l.committer.Submit(store.Op{
		Sync:  true,
		Write: func(b *store.Batch) { b.Set(producerIDKey(), encodeProducerID(end)) },
		Done: func(err error) {
			if err == nil {
				l.idDurable.Store(end)
			}
		},
	})
	return id
}
