package vault

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// conversation is the Job that an event belongs to.
func conversation(metadata json.RawMessage) string {
	var m flow.EventMetadata
	if len(metadata) > 0 && json.Unmarshal(metadata, &m) != nil {
		return "" // it was checked at the append
	}
	return m.Conversation
}

// echo is the metadata of an answer: the correlation of the asking event,
// unchanged.
func echo(metadata json.RawMessage) json.RawMessage {
	var m struct {
		Correlation json.RawMessage `json:"correlation,omitempty"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil || len(m.Correlation) == 0 {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return b
}

// alias is the part of an agent's id behind the key.
func alias(agent string) string {
	_, name, _ := strings.Cut(agent, ":")
	return name
}

func seconds(n int64) time.Duration {
	if n <= 0 {
		return flow.DefaultIdleTimeout
	}
	return time.Duration(n) * time.Second
}
