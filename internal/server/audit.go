package server

import (
	"context"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/store"
)

// VerifyDatabase verifies the audit records of a database that no server
// needs to serve: a SQLite file, or PostgreSQL by its URL. It verifies that of
// the workspace named, or of each; kept is a head that somebody has kept, for
// one workspace.
func VerifyDatabase(ctx context.Context, path, url, workspace, kept string) (map[string]chain.Report, error) {
	r, err := store.OpenRecords(ctx, store.Options{Path: path, URL: url})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	names, err := r.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	if workspace != "" {
		if !slices.Contains(names, workspace) {
			return nil, flow.Errorf(flow.CodeNotFound, "the database holds no workspace %q", workspace).At("--workspace").Right("one of " + strings.Join(names, ", "))
		}
		names = []string{workspace}
	}
	if len(names) == 0 {
		return nil, flow.Errorf(flow.CodeNotFound, "the database holds no workspace and no record").Right("that of a server which has been started")
	}
	if kept != "" && len(names) != 1 {
		return nil, flow.Errorf(flow.CodeInvalid, "the database holds %d workspaces, and a head belongs to one", len(names)).At("--workspace").Right("name it")
	}
	out := map[string]chain.Report{}
	for _, name := range names {
		if out[name], err = verifyRecord(ctx, r, name, kept); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func verifyRecord(ctx context.Context, r *store.Records, workspace, kept string) (chain.Report, error) {
	return chain.Verify(kept,
		func(after int64) ([]flow.Audit, error) {
			return r.Read(ctx, flow.AuditFilter{Workspace: workspace, Oldest: true, After: after, Limit: 1000})
		},
		func() (flow.AuditHead, error) { return r.Head(ctx, workspace) })
}
