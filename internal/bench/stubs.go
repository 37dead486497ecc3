package bench

import "context"

func idle(ctx context.Context, b *bed) error             { return nil }
func recoveryOverhead(ctx context.Context, b *bed) error { return nil }
func parked(ctx context.Context, b *bed) error           { return nil }
func killed(ctx context.Context, b *bed) error           { return nil }
func growth(ctx context.Context, b *bed) error           { return nil }
func attacks(ctx context.Context, b *bed) error          { return nil }
