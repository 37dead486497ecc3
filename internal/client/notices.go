package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Notice is something that was told to notify.url, or waits to be.
type Notice struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	RunID     string          `json:"runId,omitempty"`
	State     string          `json:"state"` // waiting, sent, given_up
	Tries     int             `json:"tries"`
	Status    int             `json:"status,omitempty"` // HTTP, of the last try
	Error     string          `json:"error,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	DueAt     *time.Time      `json:"dueAt,omitempty"`
	SettledAt *time.Time      `json:"settledAt,omitempty"`
	Body      json.RawMessage `json:"body"`
}

// NoticeTest says what became of a test notice.
type NoticeTest struct {
	Delivered  bool    `json:"delivered"`
	Status     int     `json:"status,omitempty"`
	Error      string  `json:"error,omitempty"`
	ID         string  `json:"id"`
	DurationMS float64 `json:"durationMs"`
}

// Notices lists what was told outside, newest first.
func (c *Client) Notices(ctx context.Context, p Page) (*List[Notice], error) {
	return send[List[Notice]](ctx, c, http.MethodGet, "/v1/notices", p.query(), nil)
}

// TestNotice sends a test notice once; invalid if there is nowhere to send it.
func (c *Client) TestNotice(ctx context.Context) (*NoticeTest, error) {
	return send[NoticeTest](ctx, c, http.MethodPost, "/v1/notices/test", nil, nil)
}
