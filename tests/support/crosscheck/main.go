// The tree and the notes of golang.org/x/mod, asked on standard input: a question in JSON on each line, and an
// answer on each line. It shares nothing with the ledger.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Op    string
	Note  []byte
	Text  string
	Keys  []string
	Proof []tlog.Hash
	T, N  int64
	TH, H tlog.Hash
}

type answer struct {
	OK     bool
	Error  string
	Text   string
	Names  []string
	Note   []byte
	Proof  []tlog.Hash
	Hash   tlog.Hash
	Hashes []tlog.Hash
}

type tree struct {
	stored []tlog.Hash
	size   int64
}

func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(t.stored)) {
			return nil, fmt.Errorf("no hash %d", index)
		}
		found[i] = t.stored[index]
	}
	return found, nil
}

// grow adds leaves up to a size: the data of each says its number.
func (t *tree) grow(size int64) error {
	for t.size < size {
		more, err := tlog.StoredHashes(t.size, []byte(fmt.Sprintf("leaf %d", t.size)), t)
		if err != nil {
			return err
		}
		t.stored = append(t.stored, more...)
		t.size++
	}
	return nil
}

func (t *tree) answer(q question) (a answer, err error) {
	switch q.Op {
	case "head":
		if err = t.grow(q.T); err == nil {
			a.Hash, err = tlog.TreeHash(q.T, t)
		}
	case "prove_record":
		if err = t.grow(q.T); err == nil {
			a.Proof, err = tlog.ProveRecord(q.T, q.N, t)
		}
	case "prove_tree":
		if err = t.grow(q.T); err == nil {
			a.Proof, err = tlog.ProveTree(q.T, q.N, t)
		}
	case "check_record":
		err = tlog.CheckRecord(q.Proof, q.T, q.TH, q.N, q.H)
	case "check_tree":
		err = tlog.CheckTree(q.Proof, q.T, q.TH, q.N, q.H)
	case "open":
		a, err = open(q)
	case "sign":
		a, err = sign(q)
	default:
		err = fmt.Errorf("no question %q", q.Op)
	}
	return a, err
}

func open(q question) (a answer, err error) {
	var verifiers []note.Verifier
	for _, key := range q.Keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return a, err
		}
		verifiers = append(verifiers, verifier)
	}
	opened, err := note.Open(q.Note, note.VerifierList(verifiers...))
	if err != nil {
		return a, err
	}
	a.Text = opened.Text
	for _, signature := range opened.Sigs {
		a.Names = append(a.Names, signature.Name)
	}
	return a, nil
}

func sign(q question) (a answer, err error) {
	var signers []note.Signer
	for _, key := range q.Keys {
		signer, err := note.NewSigner(key)
		if err != nil {
			return a, err
		}
		signers = append(signers, signer)
	}
	a.Note, err = note.Sign(&note.Note{Text: q.Text}, signers...)
	return a, err
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	t := &tree{}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		var a answer
		if err = json.Unmarshal(line, &q); err == nil {
			a, err = t.answer(q)
		}
		if err != nil {
			a.Error = err.Error()
		}
		a.OK = err == nil
		said, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		out.Write(append(said, '\n'))
		if lines.Buffered() == 0 {
			out.Flush()
		}
	}
}
