package vault

import (
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

func seconds(n int64) time.Duration {
	if n <= 0 {
		return flow.DefaultIdleTimeout
	}
	return time.Duration(n) * time.Second
}
