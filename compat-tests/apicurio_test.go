package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// schemaAPI is the API of Confluent's registry, which the others have too.
type schemaAPI string

const schemaType = "application/vnd.schemaregistry.v1+json"

// register registers an Avro record of one field under a subject and returns its id.
func (api schemaAPI) register(subject, field string) (int, error) {
	schema := fmt.Sprintf(`{"type":"record","name":"r","fields":[{"name":%q,"type":"string"}]}`, field)
	body, err := json.Marshal(map[string]string{"schema": schema})
	if err != nil {
		return 0, err
	}
	resp, err := http.Post(fmt.Sprintf("%s/subjects/%s/versions", api, subject), schemaType, bytes.NewReader(body))
	var got struct{ ID int }
	if err := answer(resp, err, &got); err != nil {
		return 0, err
	}
	return got.ID, nil
}

// field reads the schema of an id and returns the name of its field.
func (api schemaAPI) field(id int) (string, error) {
	resp, err := http.Get(fmt.Sprintf("%s/schemas/ids/%d", api, id))
	var got struct{ Schema string }
	if err := answer(resp, err, &got); err != nil {
		return "", err
	}
	var schema struct{ Fields []struct{ Name string } }
	if err := json.Unmarshal([]byte(got.Schema), &schema); err != nil {
		return "", err
	}
	if len(schema.Fields) != 1 {
		return "", fmt.Errorf("the schema is %s", got.Schema)
	}
	return schema.Fields[0].Name, nil
}

// answer decodes a JSON answer; one that is not 200 is an error.
func answer(resp *http.Response, err error, into any) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return errors.Join(err, json.Unmarshal(text, into))
}

// schemas is what has been registered: id -> name of the field.
type schemas map[int]string

// add registers n more schemas through one replica and wants each back from it at once.
func (s schemas) add(t *testing.T, api schemaAPI, n int) {
	t.Helper()
	for range n {
		field := fmt.Sprintf("f%d", len(s))
		id, err := api.register("subject-"+field, field)
		if err != nil {
			t.Fatalf("register %s: %v", field, err)
		}
		if was, taken := s[id]; taken {
			t.Fatalf("id %d of %s is that of %s already", id, field, was)
		}
		s[id] = field
	}
	s.check(t, api)
}

// check wants every schema from one replica.
func (s schemas) check(t *testing.T, api schemaAPI) {
	t.Helper()
	rig.Eventually(t, 20*time.Second, fmt.Sprintf("%s has all schemas", api), func() error {
		for id, want := range s {
			if got, err := api.field(id); err != nil || got != want {
				return fmt.Errorf("schema %d has %q, want %q: %v", id, got, want, err)
			}
		}
		return nil
	})
}

// TestApicurio: a whole registry whose store is three topics: register, read, kill the
// gateway, a second replica, stop and start.
func TestApicurio(t *testing.T) {
	if !*real {
		skip(t, "Apicurio Registry", "it runs with -real")
	}
	if err := rig.ApicurioAvailable(); err != nil {
		skip(t, "Apicurio Registry", err.Error())
	}
	t.Parallel()
	srv := rig.Start(t, "ROLLCALL_NUM_PARTITIONS=3", "ROLLCALL_AUTO_CREATE_TOPICS_ENABLE=false")
	const path = "/apis/ccompat/v7"
	first := rig.StartApicurio(t, srv.Addr)
	all := schemas{}
	all.add(t, schemaAPI(first.URL+path), 5)
	if !srv.External() {
		srv.Kill()
		srv.Restart()
		all.add(t, schemaAPI(first.URL+path), 5)
	}
	second := rig.StartApicurio(t, srv.Addr)
	all.check(t, schemaAPI(second.URL+path))
	all.add(t, schemaAPI(second.URL+path), 5)
	all.check(t, schemaAPI(first.URL+path))
	first.Stop()
	second.Kill()
	again := rig.StartApicurio(t, srv.Addr)
	all.check(t, schemaAPI(again.URL+path))
	all.add(t, schemaAPI(again.URL+path), 1)
	record(t, "Apicurio Registry", again.Version, "kafkasql", "register and read, gateway killed, two replicas, restart")
}
